// The page: an image in, the same image denoised out, with a divider between them.

const LARGEST = 64e6; // pixels: what canvases of all browsers can hold
const element = (id) => document.getElementById(id);
const drop = element("drop"), view = element("view");
let worker = null;

function say(text, isWrong = false) {
  element("status").textContent = text;
  element("status").classList.toggle("wrong", isWrong);
}

function setBusy(busy) {
  element("progress").hidden = !busy;
  element("sample").disabled = element("file").disabled = busy;
}

async function open(blob, name) {
  if (!element("progress").hidden) return;
  setBusy(true);
  element("result").hidden = true;
  element("bar").removeAttribute("value"); // how long loading takes is not known
  say(`Reading ${name} …`);
  try {
    const image = await read(blob, name);
    const result = await denoise(image);
    show(image, result);
  } catch (error) {
    say(error.message, true);
  } finally {
    setBusy(false);
  }
}

async function read(blob, name) {
  let bitmap;
  try {
    bitmap = await createImageBitmap(blob);
  } catch {
    throw new Error(`${name} is not a picture that your browser can read: use PNG, JPEG or WebP, or normeq denoise.`);
  }
  const { width, height } = bitmap;
  if (width * height > LARGEST) {
    throw new Error(`${name} has ${Math.round((width * height) / 1e6)} megapixels, more than ${LARGEST / 1e6}: use normeq denoise.`);
  }
  const canvas = element("before");
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(bitmap, 0, 0);
  bitmap.close();
  return { name, pixels: context.getImageData(0, 0, width, height) };
}

function denoise({ pixels }) {
  const { width, height, data } = pixels;
  worker ??= new Worker("worker.js", { type: "module" });
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data: answer }) => {
      if (answer.error) reject(new Error(answer.error));
      else if (answer.done === undefined) resolve(answer);
      else {
        say(answer.text);
        if (answer.done > 0) element("bar").value = answer.done;
      }
    };
    worker.onerror = () => reject(new Error("The network could not be started: this page was built without its files."));
    element("cancel").onclick = () => {
      worker.terminate(); // a tile cannot be interrupted otherwise
      worker = null;
      reject(new Error("Cancelled."));
    };
    worker.postMessage({ width, height, data });
  });
}

function show({ name, pixels }, { data, seconds, removed, planes }) {
  const { width, height } = pixels;
  const canvas = element("after");
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.putImageData(new ImageData(data, width, height), 0, 0);
  const megapixels = (width * height) / 1e6;
  element("size").textContent = `${width} × ${height}, ${planes === 1 ? "gray" : "colour"}`;
  element("time").textContent = `${seconds.toFixed(1)} s`;
  element("speed").textContent = `${(seconds / megapixels).toFixed(1)} s`;
  element("removed").textContent = `${removed.toFixed(1)} gray levels`;
  element("result").hidden = false;
  move(50);
  say(`${name} is denoised: drag the divider.`);
  canvas.toBlob((blob) => {
    URL.revokeObjectURL(element("save").href);
    element("save").href = URL.createObjectURL(blob);
    element("save").download = name.replace(/\.[^.]*$/, "") + ".denoised.png";
  });
}

function move(percent) {
  element("divider").value = percent;
  element("cover").style.clipPath = `inset(0 ${100 - percent}% 0 0)`;
  element("line").style.left = `${percent}%`;
}

element("divider").oninput = (event) => move(Number(event.target.value));
view.onpointerdown = view.onpointermove = (event) => {
  if (!(event.buttons & 1)) return;
  const { left, width } = view.getBoundingClientRect();
  move(Math.max(0, Math.min(100, (100 * (event.clientX - left)) / width)));
};

element("file").onchange = ({ target }) => {
  if (target.files.length) open(target.files[0], target.files[0].name);
  target.value = ""; // so that the same file can be chosen again
};
element("sample").onclick = async () => {
  const answer = await fetch("sample.png");
  if (answer.ok) open(await answer.blob(), "sample.png");
  else say("The sample is missing: this page was built without its files.", true);
};
document.ondragover = (event) => {
  event.preventDefault();
  drop.classList.add("over");
};
document.ondragleave = () => drop.classList.remove("over");
document.ondrop = (event) => {
  event.preventDefault();
  drop.classList.remove("over");
  const file = event.dataTransfer.files[0];
  if (file) open(file, file.name);
};
