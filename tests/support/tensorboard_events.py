"""Reads TensorBoard's event files: TFRecords of protocol buffers, without their schema."""
import struct


def masked_crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    crc ^= 0xffffffff
    return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff


def records_of(file):
    data = file.read_bytes()
    while data:
        length, length_crc = struct.unpack_from("<QI", data)
        record, crc = data[12:12 + length], struct.unpack_from("<I", data, 12 + length)[0]
        assert length_crc == masked_crc32c(data[:8]) and crc == masked_crc32c(record), file
        yield record
        data = data[16 + length:]


def varint(data, place):
    number = shift = 0
    while True:
        byte = data[place]
        number |= (byte & 0x7f) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return number, place


def fields_of(message):
    """{field: [value, ...]}; nested messages and texts as bytes."""
    fields, place = {}, 0
    while place < len(message):
        key, place = varint(message, place)
        if key & 7 == 0:
            value, place = varint(message, place)
        elif key & 7 == 2:
            length, place = varint(message, place)
            value, place = message[place:place + length], place + length
        else:
            form, size = {1: ("<d", 8), 5: ("<f", 4)}[key & 7]
            value, place = struct.unpack_from(form, message, place)[0], place + size
        fields.setdefault(key >> 3, []).append(value)
    return fields


def at(message, *path):
    """The first value of nested fields."""
    for field in path:
        message = fields_of(message)[field][0]
    return message


def summaries_of(file):
    """[(tag, step, value of a scalar or content of a plugin's data), ...]; checks the version."""
    first, *events = map(fields_of, records_of(file))
    assert first[3] == [b"brain.Event:2"], first
    summaries = []
    for event in events:
        value = fields_of(at(event[5][0], 1))
        content = value[2][0] if 2 in value else at(value[9][0], 1, 2)
        if 9 in value:
            assert at(value[9][0], 1, 1) == b"hparams" and at(value[8][0], 1) == 1, value
        summaries.append((value[1][0].decode(), event.get(2, [0])[0], content))
    return summaries
