// Requests to the server. The token is part of the page's own address, so relative addresses carry it.

async function answer(address, options) {
  let response;
  try {
    response = await fetch(address, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The command has ended: start it again in the terminal.");
  }
  if (response.ok) return response;
  let said;
  try {
    said = (await response.json()).error;
  } catch {
    said = `The server answered ${response.status}.`;
  }
  throw new Error(said);
}

function withWords(path, words = {}) {
  const given = Object.entries(words).filter(([, value]) => value !== null && value !== undefined);
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return text ? `${path}?${text}` : path;
}

/** Ask for plain data. */
export async function ask(path, words, options) {
  return (await answer(withWords(path, words), options)).json();
}

/** Ask for a tile: its shape, and its values row by row, channels last. */
export async function askTile(words, signal) {
  const response = await answer(withWords("tile", words), { signal });
  const [rows, columns, channels] = response.headers.get("X-Shape").split(",").map(Number);
  return { rows, columns, channels, values: new Float32Array(await response.arrayBuffer()) };
}
