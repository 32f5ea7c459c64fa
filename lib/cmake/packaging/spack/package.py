# A recipe for Spack 1.0 or newer. To use it: run `spack repo create REPO lockstep`, copy this file to
# REPO/spack_repo/lockstep/packages/lockstep/package.py, run `spack repo add REPO/spack_repo/lockstep` and, in the root of a
# clone, `spack dev-build lockstep@main`.
#
# Spack has never run this recipe: its names of packages and versions are from Spack's documentation.
# pylint: disable=undefined-variable,wildcard-import,unused-wildcard-import
from spack_repo.builtin.build_systems.cmake import CMakePackage, generator
from spack_repo.builtin.build_systems.cuda import CudaPackage

from spack.package import *


class Lockstep(CMakePackage, CudaPackage):
    """Data-parallel training of image classifiers over MPI."""

    license("Apache-2.0")
    version("main")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("openmpi@4.1:")
    depends_on("hdf5@1.10: ~mpi +hl")
    depends_on("fmt@9:")
    depends_on("cli11@2.1:")
    depends_on("nlohmann-json@3.11:")
    depends_on("libsodium")
    depends_on("xxhash")
    depends_on("yaml-cpp")
    depends_on("zlib-api")
    depends_on("jpeg")
    depends_on("libpng")
    depends_on("libexif")
    depends_on("matio")
    depends_on("onnx")
    depends_on("protobuf")
    depends_on("cuda@12.4:", when="+cuda")
    depends_on("cudnn@9.8:", when="+cuda")
    depends_on("nccl@2.20:", when="+cuda")

    generator("ninja")

    def cmake_args(self):
        arguments = [
            self.define("LOCKSTEP_TESTS", False),
            self.define("LOCKSTEP_BENCH", False),
            self.define("LOCKSTEP_CUDA", "ON" if self.spec.satisfies("+cuda") else "OFF"),
        ]
        if self.spec.satisfies("+cuda") and "none" not in self.spec.variants["cuda_arch"].value:
            arguments.append(self.define("CMAKE_CUDA_ARCHITECTURES", self.spec.variants["cuda_arch"].value))
        return arguments
