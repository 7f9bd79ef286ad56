// Beside the page, so that it never freezes: the network, tile by tile.

import * as ort from "./ort/ort.wasm.min.mjs";

ort.env.wasm.wasmPaths = new URL("./ort/", import.meta.url).href;
// Threads share memory, which browsers allow only to pages that are served as isolated.
ort.env.wasm.numThreads = self.crossOriginIsolated ? Math.min(4, navigator.hardwareConcurrency) : 1;

const LARGEST_TILE = 1056; // pixels a side with the halo: about 450 MB of activations
let loaded = null;

async function load() {
  const answer = await fetch("model.json");
  if (!answer.ok) throw new Error("The network is missing: this page was built without its files.");
  const about = await answer.json();
  const session = await ort.InferenceSession.create("model.onnx", { executionProviders: ["wasm"] });
  return { about, session };
}

self.onmessage = async ({ data: image }) => {
  try {
    self.postMessage({ text: "Loading the network …", done: 0 });
    loaded ??= load();
    const { about, session } = await loaded;
    const start = performance.now();
    const planes = split(image);
    let removed = 0;
    for (const [number, plane] of planes.entries()) {
      const progress = (share) => self.postMessage({ text: "Denoising …", done: (number + share) / planes.length });
      removed += (await denoise(plane, image, about, session, progress)) / planes.length;
    }
    join(planes, image.data);
    const seconds = (performance.now() - start) / 1000;
    self.postMessage({ data: image.data, seconds, removed: Math.sqrt(removed), planes: planes.length }, [image.data.buffer]);
  } catch (error) {
    loaded = null;
    self.postMessage({ error: error.message });
  }
};

// The colours of an image, or one plane if it is gray.
function split({ data }) {
  let isGray = true;
  for (let i = 0; i < data.length && isGray; i += 4) isGray = data[i] === data[i + 1] && data[i] === data[i + 2];
  return Array.from({ length: isGray ? 1 : 3 }, (_, colour) => {
    const plane = new Float32Array(data.length / 4);
    for (let i = 0; i < plane.length; i++) plane[i] = data[4 * i + colour];
    return plane;
  });
}

// Rounded and clipped by the type of the pixels; opacity stays.
function join(planes, data) {
  for (let colour = 0; colour < 3; colour++) {
    const plane = planes[planes.length === 1 ? 0 : colour];
    for (let i = 0; i < plane.length; i++) data[4 * i + colour] = plane[i];
  }
}

// Denoise a plane in place; return the mean square of what was removed.
async function denoise(plane, { width, height }, about, session, progress) {
  // Zero mean and unit spread, which changes nothing for an equivariant network but rounding.
  const mean = plane.reduce((sum, value) => sum + value, 0) / plane.length;
  const variance = plane.reduce((sum, value) => sum + (value - mean) ** 2, 0) / plane.length;
  const spread = Math.sqrt(variance) || 1;
  const given = plane.map((value) => (value - mean) / spread);
  let removed = 0;
  const places = tiles(width, height, about);
  progress(0);
  for (const [number, { kept, seen }] of places.entries()) {
    const output = await session.run({ image: cut(given, width, seen) });
    const values = output.denoised.data;
    const across = seen.right - seen.left;
    for (let y = kept.top; y < kept.bottom; y++) {
      for (let x = kept.left; x < kept.right; x++) {
        const value = values[(y - seen.top) * across + x - seen.left] * spread + mean;
        removed += (value - plane[y * width + x]) ** 2;
        plane[y * width + x] = value;
      }
    }
    output.denoised.dispose();
    progress((number + 1) / places.length);
  }
  return removed / plane.length;
}

// Tiles whose halo covers the receptive field and whose sides are multiples of the stride: the result is that of the whole.
export function tiles(width, height, { receptive_field: reach, stride }) {
  if (reach === null || Math.max(width, height) <= LARGEST_TILE) {
    const whole = { top: 0, bottom: height, left: 0, right: width };
    return [{ kept: whole, seen: whole }];
  }
  const halo = Math.ceil(reach / stride) * stride;
  const side = Math.max(stride, Math.floor((LARGEST_TILE - 2 * halo) / stride) * stride);
  const found = [];
  for (let top = 0; top < height; top += side) {
    for (let left = 0; left < width; left += side) {
      const kept = { top, left, bottom: Math.min(height, top + side), right: Math.min(width, left + side) };
      const seen = {
        top: Math.max(0, top - halo),
        left: Math.max(0, left - halo),
        bottom: Math.min(height, kept.bottom + halo),
        right: Math.min(width, kept.right + halo),
      };
      found.push({ kept, seen });
    }
  }
  return found;
}

function cut(values, width, { top, bottom, left, right }) {
  const part = new Float32Array((bottom - top) * (right - left));
  for (let y = top; y < bottom; y++) {
    part.set(values.subarray(y * width + left, y * width + right), (y - top) * (right - left));
  }
  return new ort.Tensor("float32", part, [1, 1, bottom - top, right - left]);
}
