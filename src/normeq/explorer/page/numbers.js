// Numbers for people.

/** Four digits, with separators for thousands. */
export function plain(value) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e7 || size < 1e-3)) return value.toExponential(2);
  const digits = size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : size >= 1 ? 3 : 4;
  return value.toLocaleString("en", { maximumFractionDigits: digits }).replace("-", "−");
}

/** A number with a sign that reads as an operation. */
export function signed(value) {
  return `${value < 0 ? "−" : "+"} ${plain(Math.abs(value))}`;
}

/** Three digits: what a slider shows is what is computed. */
export function rounded(value) {
  return Number(value.toPrecision(3));
}

/** An error relative to a spread. */
export function small(value) {
  return value >= 0.01 ? value.toPrecision(2) : value.toExponential(1);
}
