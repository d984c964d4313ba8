"""Whether Tycho takes the safetensors files that it should: damaged and strange ones by the thousand, judged by a
reader written here to the letter of the format.

    PYTHON spec/differential.py [--files 20000] [--seed 1]         # needs numpy and safetensors; luajit with tycho on its paths

Tycho and this reader must agree on each file, and on the bytes of each tensor; what Tycho takes the safetensors package
must take too, with the same bytes (the package takes more: of names that stand twice, the last).
"""
import argparse, json, os, random, struct, subprocess, sys, tempfile
from safetensors import deserialize

SIZES = {"F32": 4, "F16": 2, "BF16": 2, "F64": 8, "I32": 4, "I64": 8, "U8": 1, "BOOL": 1}      # Tycho's dtypes
OTHERS = ["I8", "U16", "F8_E4M3", "C64", "f32", ""]
LUA = r"""
local core = require "tycho.core"
require "tycho"
for i = 1, tonumber(arg[2]) do
  local ok, tensors = pcall(core.read_safetensors, arg[1] .. "/" .. i)
  local out = {}
  for name, t in pairs(ok and tensors or {}) do
    local bytes, sum = t:numel() * t:element_size(), 0
    local p = require("ffi").cast("uint8_t *", (core.data_ptr(t)))
    for k = 0, bytes - 1 do sum = (sum * 31 + p[k]) % 4294967291 end
    out[#out + 1] = {name, t.dtype, tostring(t.shape), sum}
  end
  print(ok and "yes " .. core.json_encode(out) or "no")
end
"""
NAMES = {"F32": "float32", "F16": "float16", "BF16": "bfloat16", "F64": "float64",
         "I32": "int32", "I64": "int64", "U8": "uint8", "BOOL": "bool"}


class Bad(Exception):
    pass


def need(ok):
    if not ok:
        raise Bad


def once(pairs):
    out = {}
    for k, v in pairs:
        need(k not in out)
        out[k] = v
    return out


def whole(v):
    return type(v) is int and 0 <= v < 2**63


def no_constant(_):
    raise Bad


def read(data):
    """{name: (dtype, shape, bytes)}, or Bad."""
    need(len(data) >= 8)
    n = struct.unpack("<Q", data[:8])[0]
    need(n <= 100000000 and n <= len(data) - 8 and data[8:9] == b"{")
    try:
        head = json.loads(data[8:8 + n].decode("utf-8"), object_pairs_hook=once, parse_constant=no_constant)
    except (ValueError, RecursionError):
        raise Bad
    need(type(head) is dict)
    body, out, spans = data[8 + n:], {}, []
    for name, v in head.items():
        need(type(v) is dict)
        if name == "__metadata__":
            need(all(type(s) is str for s in v.values()))
            continue
        need(set(v) == {"dtype", "shape", "data_offsets"} and type(v["shape"]) is list and
             type(v["data_offsets"]) is list and len(v["data_offsets"]) == 2)
        dtype, shape, (a, b) = v["dtype"], v["shape"], v["data_offsets"]
        need(dtype in SIZES if type(dtype) is str else False)
        need(len(shape) <= 8 and all(whole(s) for s in shape) and whole(a) and whole(b) and a <= b <= len(body))
        size = SIZES[dtype]
        for s in shape:
            size *= s
        need(size == b - a)
        spans.append((a, b))
        raw = body[a:b]
        out[name] = (dtype, shape, bytes(x != 0 for x in raw) if dtype == "BOOL" else raw)
    at = 0
    for a, b in sorted(spans):
        need(a == at)
        at = b
    need(at == len(body))
    return out


def listed(tensors):
    out = []
    for name, (dtype, shape, raw) in tensors.items():
        total = 0
        for x in raw:
            total = (total * 31 + x) % 4294967291
        out.append((name, NAMES[dtype], "x".join(map(str, shape)) if shape else "()", total))
    return sorted(out)


def strange(r):
    """A file: mostly right, with a few things changed."""
    at, head, body = 0, [], b""
    for i in range(r.randrange(4)):
        dtype = r.choice(list(SIZES)) if r.random() < 0.95 else r.choice(OTHERS)
        shape = [r.randrange(4) for _ in range(r.randrange(4))]
        size = SIZES.get(dtype, 1)
        for s in shape:
            size *= s
        name = r.choice(["a", "b.c", "w%d" % i, "é", "", "__metadata__"]) if r.random() < 0.2 else "t%d" % i
        head.append([name, {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}])
        body += r.randbytes(size)
        at += size
    if r.random() < 0.3:
        head.insert(r.randrange(len(head) + 1), ["__metadata__", {"format": "pt"} if r.random() < 0.7 else
                                                 r.choice([{"a": 1}, {}, [], "x", {"a": None}, {"k": {"a": "b"}}])])
    for _ in range(r.choice([0, 0, 1, 1, 2])):
        if not head:
            break
        e = r.choice(head)
        if type(e[1]) is not dict or any(type(e[1].get(k)) is not list or not all(type(x) is int for x in e[1][k])
                                         for k in ("shape", "data_offsets")):
            continue
        kind = r.randrange(10)
        if kind == 0:
            e[1]["data_offsets"] = [x + r.choice([-1, 1, 4, 2**40, 2**63]) for x in e[1]["data_offsets"]]
        elif kind == 1:
            e[1]["shape"] = r.choice([[2**62, 4], [-1], [1.5], "2", None, [[2]], [True],
                                      e[1]["shape"] + [1], e[1]["shape"] + [1] * 6, [2**64], [0, 2**70]])
        elif kind == 2:
            e[1][r.choice(["extra", "Dtype"])] = 1
        elif kind == 3:
            e[1].pop(r.choice(list(e[1])))
        elif kind == 4:
            e[1]["dtype"] = r.choice([1, None, "F32 ", "bool"] + OTHERS)
        elif kind == 5:
            head.append([e[0], e[1]])
        elif kind == 6:
            e[1]["data_offsets"] = r.choice([[0], [0, 1, 2], {}, [0.0, 4.0], ["0", "4"], [4, 0], None])
        elif kind == 7:
            r.shuffle(head)
        elif kind == 8:
            body += b"\0" * r.choice([1, 8])
        else:
            body = body[:-1]
    text = "{" + ",".join(json.dumps(k, ensure_ascii=r.random() < 0.5) + ":" + json.dumps(v) for k, v in head) + "}"
    text = text.encode() + b" " * r.choice([0, 0, 3, 8])
    if r.random() < 0.15:
        text = r.choice([b" " + text, text + b"x", text.replace(b"{", b"[", 1), text[:-1], b"",
                         text.replace(b":", b": ", 3), text + b"\0", text.replace(b"t", b"\xff", 1),
                         b"\xef\xbb\xbf" + text, text.replace(b"0", b"00", 1),
                         text.replace(b"0", b"1e0", 1), text.replace(b",", b",,", 1)])
    length = len(text) + (r.choice([-1, 1, 100, 2**40]) if r.random() < 0.05 else 0)
    data = struct.pack("<Q", max(length, 0)) + text + body
    if r.random() < 0.2:
        data = bytearray(data)
        for _ in range(r.randrange(1, 4)):
            data[r.randrange(len(data))] ^= 1 << r.randrange(8)
        data = bytes(data)
    if r.random() < 0.05:
        data = data[:r.randrange(len(data))]
    return data


def main():
    o = argparse.ArgumentParser()
    o.add_argument("--files", type=int, default=20000)
    o.add_argument("--seed", type=int, default=1)
    o = o.parse_args()
    r, taken = random.Random(o.seed), 0
    with tempfile.TemporaryDirectory() as d:
        files = [strange(r) for _ in range(o.files)]
        for i, data in enumerate(files):
            with open("%s/%d" % (d, i + 1), "wb") as f:
                f.write(data)
        said = subprocess.run(["luajit", "-", d, str(o.files)], input=LUA.encode(), stdout=subprocess.PIPE,
                              check=True).stdout.decode().splitlines()
    for data, line in zip(files, said):
        try:
            want = listed(read(data))
        except Bad:
            want = None
        got = sorted(map(tuple, json.loads(line[4:]))) if line.startswith("yes") else None
        assert got == want, "%r\nTycho: %s\nhere: %s" % (data, line, want)
        if got is None:
            continue
        taken += 1
        theirs = {k: bytes(v["data"]) for k, v in deserialize(data)}
        assert theirs.keys() == {k for k, *_ in got}
        assert all(theirs[k] == raw or dtype == "BOOL" for k, (dtype, _, raw) in read(data).items())
    print("%d files: Tycho and the letter of the format agree on each; it takes %d, as does the safetensors package" % (o.files, taken))


main()
