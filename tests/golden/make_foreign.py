"""Writes the files of other programs that tests/files/foreign reads: by h5py, and by the package safetensors.

    python3 make_foreign.py OUTPUT

The tensors are those of small_state(): five of fp32 or another type, and PyTorch's count of batches.
    state_dict.h5           five lines of h5py; state_dict_attributes.h5 likewise, with texts of every kind as attributes
    state_dict_half.h5      float16; state_dict_double.h5: float64
    state_dict_many.h5      600 tensors: names in a tree of more than one level
    state_dict_latest.h5, state_dict_chunked.h5, state_dict_group.h5, images_and_labels.h5, keras.h5
                            what is refused: see the test
    tensors.safetensors     fp32; tensors_half, tensors_double, tensors_bfloat16
"""

import pathlib
import sys

import h5py
import ml_dtypes
import numpy
import safetensors
import safetensors.numpy


def small_state(dtype):
    return {
        "conv1.weight": (numpy.arange(24, dtype=numpy.float64).reshape(2, 3, 2, 2) / 8 - 1).astype(dtype),
        "bn1.weight": numpy.array([1, -0.5], dtype),
        "bn1.running_mean": numpy.array([0.25, 3], dtype),
        "bn1.num_batches_tracked": numpy.array(7, numpy.int64),
        "fc.weight": numpy.array([[0.5, 0.125, -2]], dtype),
        "fc.bias": numpy.array([0.0], dtype),
    }


def write_h5(path, state, **options):
    with h5py.File(path, "w", **options) as file:
        for name, values in state.items():
            file[name] = values


def main():
    output = pathlib.Path(sys.argv[1])
    state = small_state(numpy.float32)
    write_h5(output / "state_dict.h5", state)
    write_h5(output / "state_dict_half.h5", small_state(numpy.float16))
    write_h5(output / "state_dict_double.h5", small_state(numpy.float64))
    write_h5(output / "state_dict_attributes.h5", state)
    with h5py.File(output / "state_dict_attributes.h5", "a") as file:
        file.attrs["model"] = "resnet18"  # of variable length, UTF-8
        file.attrs["author"] = numpy.bytes_("ASCII of fixed length")
        file.attrs["classes"] = ["cat", "dog", "Ärmel"]
        file.attrs.create("title", "Ärmel".encode(), dtype=h5py.string_dtype("utf-8", 6))
        file.attrs.create("old", "ascii", dtype=h5py.string_dtype("ascii"))
        file["fc.bias"].attrs["unit"] = "none"
    write_h5(output / "state_dict_many.h5", {f"layer{i}.weight": numpy.float32([i, -i]) for i in range(600)})
    write_h5(output / "state_dict_latest.h5", state, libver="latest")
    with h5py.File(output / "state_dict_chunked.h5", "w") as file:
        file.create_dataset("fc.weight", data=state["fc.weight"], compression="gzip")
    write_h5(output / "state_dict_group.h5", {"model/fc.weight": state["fc.weight"]})

    with h5py.File(output / "images_and_labels.h5", "w") as file:
        file["images"] = numpy.zeros((2, 3, 4, 4), numpy.uint8)
        file["labels"] = numpy.zeros(2, numpy.int64)
        file["classes"] = numpy.array([b"cat", b"dog"])
        file["size"] = numpy.int64(4)
    with h5py.File(output / "keras.h5", "w") as file:
        file.attrs["backend"] = "tensorflow"
        file.attrs["keras_version"] = "2.15.0"
        file.create_group("model_weights").attrs["layer_names"] = [b"dense"]
        file["model_weights/dense/dense/kernel:0"] = numpy.zeros((3, 1), numpy.float32)

    safetensors.numpy.save_file(state, output / "tensors.safetensors", metadata={"format": "pt"})
    safetensors.numpy.save_file(small_state(numpy.float16), output / "tensors_half.safetensors")
    safetensors.numpy.save_file(small_state(numpy.float64), output / "tensors_double.safetensors")
    safetensors.numpy.save_file(small_state(ml_dtypes.bfloat16), output / "tensors_bfloat16.safetensors")


if __name__ == "__main__":
    main()
