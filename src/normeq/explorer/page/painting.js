// Values turned into colours.

const scratch = document.createElement("canvas");

/** Paint a tile: value(i) is the number of channel i % channels, in [0, 1] from black to white. */
export function paint(tile, channels, value) {
  const canvas = document.createElement("canvas");
  canvas.width = tile.columns;
  canvas.height = tile.rows;
  const context = canvas.getContext("2d");
  const image = context.createImageData(tile.columns, tile.rows);
  const out = image.data;
  const colour = channels.length === 3;
  for (let pixel = 0; pixel < tile.rows * tile.columns; pixel += 1) {
    const at = pixel * tile.channels;
    for (let part = 0; part < 3; part += 1) {
      const shade = value(at + channels[colour ? part : 0]);
      out[4 * pixel + part] = 255 * Math.min(1, Math.max(0, shade));
    }
    out[4 * pixel + 3] = Number.isFinite(tile.values[at + channels[0]]) ? 255 : 0;
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

const STOPS = [
  [33, 102, 172], [103, 169, 207], [209, 229, 240], [247, 247, 247],
  [253, 219, 199], [239, 138, 98], [178, 24, 43],
];

/** Blue for -1, white for 0, red for 1. */
function diverging(value) {
  const place = (Math.min(1, Math.max(-1, value)) + 1) * 3;
  const low = Math.min(5, Math.floor(place));
  return STOPS[low].map((part, index) => part + (place - low) * (STOPS[low + 1][index] - part));
}

/** Draw the weights of a filter, and a frame around the pixel it belongs to. */
export function paintFilter(canvas, found) {
  const rows = found.rows[1] - found.rows[0];
  const columns = found.columns[1] - found.columns[0];
  const sizes = found.weights.map(Math.abs).sort((a, b) => a - b);
  const strongest = sizes[Math.floor(0.99 * (sizes.length - 1))] || 1;
  scratch.width = columns;
  scratch.height = rows;
  const small = scratch.getContext("2d");
  const image = small.createImageData(columns, rows);
  found.weights.forEach((weight, index) => {
    image.data.set([...diverging(weight / strongest), 255], 4 * index);
  });
  small.putImageData(image, 0, 0);
  const context = canvas.getContext("2d");
  const scale = Math.min(canvas.width / columns, canvas.height / rows);
  const left = (canvas.width - scale * columns) / 2;
  const top = (canvas.height - scale * rows) / 2;
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.imageSmoothingEnabled = false;
  context.drawImage(scratch, left, top, scale * columns, scale * rows);
  context.strokeStyle = "#0b7a2b";
  context.lineWidth = 2;
  const x = left + (found.column - found.columns[0]) * scale;
  const y = top + (found.row - found.rows[0]) * scale;
  context.strokeRect(x - 1, y - 1, scale + 2, scale + 2);
}
