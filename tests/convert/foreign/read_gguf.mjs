// What Hugging Face's reader sees in a GGUF file, as JSON in the form of ../show_gguf.c.
//   node read_gguf.mjs NODE_MODULES FILE
import { createRequire } from "node:module";

const [, , modules, file] = process.argv;
const { gguf, GGUFValueType: Type } = createRequire(`${modules}/`)("@huggingface/gguf");

// Numbers travel as text, floats as their bits, so that JSON loses nothing.
function floatBits(value, bytes) {
    const view = new DataView(new ArrayBuffer(8));
    if (bytes === 4) {
        view.setFloat32(0, value);
        return view.getUint32(0).toString(16).padStart(8, "0");
    }
    view.setFloat64(0, value);
    return view.getBigUint64(0).toString(16).padStart(16, "0");
}

function shown(type, value) {
    switch (type) {
        case Type.STRING:
        case Type.BOOL:
            return value;
        case Type.FLOAT32:
            return floatBits(value, 4);
        case Type.FLOAT64:
            return floatBits(value, 8);
        default:
            return String(value);
    }
}

function shownValue(key, { type, subType, value }) {
    if (type !== Type.ARRAY) return { key, type, value: shown(type, value) };
    return { key, type, item: subType, value: value.map((item) => shown(subType, item)) };
}

const read = await gguf(file, { typedMetadata: true, computeParametersCount: true, allowLocalFile: true });
const { version, tensor_count, kv_count, ...values } = read.typedMetadata;
const metadata = Object.entries(values).map(([key, entry]) => shownValue(key, entry));
const tensors = read.tensorInfos.map((tensor) => ({
    name: tensor.name,
    type: tensor.dtype,
    shape: tensor.shape.map(String),
    offset: String(read.tensorDataOffset + tensor.offset),
}));
if (version.value !== 3) throw new Error(`version ${version.value}`);
if (Number(kv_count.value) !== metadata.length) throw new Error(`${kv_count.value} keys announced`);
if (Number(tensor_count.value) !== tensors.length) throw new Error(`${tensor_count.value} tensors announced`);
process.stdout.write(JSON.stringify({ metadata, tensors }));
