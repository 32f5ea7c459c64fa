"""Writes pictures.h5, what tests/picture compares with: files of many kinds, and what Pillow makes of them, of colours by
torchvision's hand.

    python3 make_pictures.py [--output DIR]

/files/NAME/bytes    uint8 [bytes]    a JPEG or PNG
/files/NAME/pixels   uint8 [h, w, 3]  as RGB, upright
/resized/picture     uint8 [h, w, 3]
/resized/NAME        uint8 [h, w, 3]  a box of it resized with BILINEAR; attribute box: top, left, height, width
/colours/NAME        uint8 [h, w, 3]  the same picture changed; attribute factors: of what the letters of NAME stand for
Attribute pillow of the root: its version.
"""

import argparse
import io
import pathlib

import h5py
import numpy
import PIL
from PIL import Image, ImageOps
from torchvision.transforms import functional

HEIGHT, WIDTH = 37, 53
BOXES = {"all_down": ((0, 0, 47, 61), (20, 26)), "part_up": ((5, 7, 20, 30), (64, 64)),
         "wide": ((0, 10, 47, 3), (8, 90)), "same_width": ((3, 0, 30, 61), (7, 61)), "same": ((1, 2, 9, 11), (9, 11)),
         "one_pixel": ((46, 60, 1, 1), (5, 4)), "to_one": ((0, 0, 47, 61), (1, 1))}
CHANGES = {"b": functional.adjust_brightness, "c": functional.adjust_contrast, "s": functional.adjust_saturation}
COLOURS = {"bcs": (1.3, 0.6, 1.7), "bsc": (0.7, 1.9, 0.2), "cbs": (1.6, 1.1, 0.4), "csb": (0.3, 1.4, 1.8),
           "sbc": (1.2, 0.8, 1.5), "scb": (0.1, 1.3, 0.9), "b": (2,), "c": (0,), "s": (0,)}


def scene(height, width):
    """Slopes, an edge and little noise: what a JPEG keeps."""
    rows, columns = numpy.mgrid[0:height, 0:width]
    noise = numpy.random.default_rng(1).integers(0, 8, (height, width, 3))
    planes = [rows * 255 // height, columns * 255 // width, numpy.where(rows + columns > width // 2, 200, 40)]
    return numpy.clip(numpy.stack(planes, 2) + noise, 0, 255).astype(numpy.uint8)


def encoded(picture, **options):
    target = io.BytesIO()
    picture.save(target, **options)
    return target.getvalue()


def exif(orientation):
    tags = Image.Exif()
    tags[0x0112] = orientation
    return tags.tobytes()


def files():
    picture = Image.fromarray(scene(HEIGHT, WIDTH))
    yield "jpeg", encoded(picture, format="jpeg", quality=90)
    yield "jpeg_444", encoded(picture, format="jpeg", quality=95, subsampling=0)
    yield "jpeg_gray", encoded(picture.convert("L"), format="jpeg", quality=90)
    yield "jpeg_cmyk", encoded(picture.convert("CMYK"), format="jpeg", quality=95)
    yield "jpeg_progressive", encoded(picture, format="jpeg", quality=90, progressive=True)
    for orientation in range(1, 9):
        yield f"jpeg_exif_{orientation}", encoded(picture, format="jpeg", quality=90, exif=exif(orientation))
    yield "png", encoded(picture, format="png")
    yield "png_gray", encoded(picture.convert("L"), format="png")
    yield "png_palette", encoded(picture.quantize(16), format="png")
    alpha = Image.fromarray((numpy.arange(HEIGHT * WIDTH) % 256).astype(numpy.uint8).reshape(HEIGHT, WIDTH))
    yield "png_transparent", encoded(Image.merge("RGBA", (*picture.split(), alpha)), format="png")
    yield "png_bits", encoded(picture.convert("1"), format="png")


def pixels(file):
    return numpy.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(file))).convert("RGB"))


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--output", type=pathlib.Path, default=pathlib.Path(__file__).parent)
    with h5py.File(arguments.parse_args().output / "pictures.h5", "w", libver=("earliest", "v108")) as golden:
        golden.attrs["pillow"] = PIL.__version__
        for name, file in files():
            golden[f"files/{name}/bytes"] = numpy.frombuffer(file, numpy.uint8)
            golden[f"files/{name}/pixels"] = pixels(file)
        noise = numpy.random.default_rng(2).integers(0, 256, (47, 61, 3), dtype=numpy.uint8)
        golden["resized/picture"] = noise
        for name, (box, size) in BOXES.items():
            top, left, height, width = box
            part = Image.fromarray(noise[top:top + height, left:left + width])
            golden[f"resized/{name}"] = numpy.asarray(part.resize(size[::-1], Image.BILINEAR))
            golden[f"resized/{name}"].attrs["box"] = box
        for name, factors in COLOURS.items():
            picture = Image.fromarray(noise)
            for letter, factor in zip(name, factors):
                picture = CHANGES[letter](picture, factor)
            golden[f"colours/{name}"] = numpy.asarray(picture)
            golden[f"colours/{name}"].attrs["factors"] = factors


if __name__ == "__main__":
    main()
