// Gray images: { data: Float32Array, wide, high }, row by row.

export const image = (wide, high, data = new Float32Array(wide * high)) => ({ data, wide, high });

// The gray pixels of canvas pixels (RGBA).
export function fromRGBA({ data, width, height }) {
  const gray = image(width, height);
  for (let i = 0; i < gray.data.length; i++) gray.data[i] = 0.299 * data[4 * i] + 0.587 * data[4 * i + 1] + 0.114 * data[4 * i + 2];
  return gray;
}

export const map = ({ data, wide, high }, change) => image(wide, high, data.map(change));

export function transposed({ data, wide, high }) {
  const turned = image(high, wide);
  for (let y = 0; y < high; y++) for (let x = 0; x < wide; x++) turned.data[x * high + y] = data[y * wide + x];
  return turned;
}

// A filter of rows, applied to rows and then to columns. `row` gets a line and writes the result into another.
function separable(source, row) {
  const across = (from) => {
    const to = image(from.wide, from.high);
    for (let y = 0; y < from.high; y++) {
      row(from.data.subarray(y * from.wide, (y + 1) * from.wide), to.data.subarray(y * from.wide, (y + 1) * from.wide));
    }
    return to;
  };
  return transposed(across(transposed(across(source))));
}

function meanRow(reach) {
  return (from, to) => {
    const last = from.length - 1;
    const at = (x) => from[Math.min(Math.max(x, 0), last)];
    let sum = 0;
    for (let x = -reach; x <= reach; x++) sum += at(x);
    for (let x = 0; x <= last; x++) {
      to[x] = sum / (2 * reach + 1);
      sum += at(x + reach + 1) - at(x - reach);
    }
  };
}

export const mean = (source, reach) => separable(source, meanRow(reach));

// The mean along rows only.
export function meanAlong(source, reach) {
  const to = image(source.wide, source.high);
  const row = meanRow(reach);
  for (let y = 0; y < source.high; y++) {
    row(source.data.subarray(y * source.wide, (y + 1) * source.wide), to.data.subarray(y * source.wide, (y + 1) * source.wide));
  }
  return to;
}

// A Gaussian blur, as three means of about the same spread.
export function blur(source, sigma) {
  const reach = Math.max(1, Math.round((Math.sqrt(4 * sigma * sigma + 1) - 1) / 2));
  return mean(mean(mean(source, reach), reach), reach);
}

// The largest value within `reach` pixels each way.
export const largest = (source, reach) =>
  separable(source, (from, to) => {
    for (let x = 0; x < from.length; x++) {
      let most = -Infinity;
      for (let k = Math.max(0, x - reach); k <= Math.min(from.length - 1, x + reach); k++) if (from[k] > most) most = from[k];
      to[x] = most;
    }
  });

// How much darker each pixel is than the paper around it, 0 to 1.
export function inkOf(gray, reach, sigma = reach) {
  const paper = blur(largest(mean(gray, 1), reach), sigma);
  return map(gray, (value, i) => Math.min(Math.max(1 - value / Math.max(paper.data[i], 1), 0), 1));
}

// The value between pixels.
export function at({ data, wide, high }, x, y) {
  const cx = Math.min(Math.max(x, 0), wide - 1.001);
  const cy = Math.min(Math.max(y, 0), high - 1.001);
  const [left, top] = [Math.floor(cx), Math.floor(cy)];
  const [right, down, i] = [cx - left, cy - top, top * wide + left];
  return (
    (1 - down) * ((1 - right) * data[i] + right * data[i + 1]) + down * ((1 - right) * data[i + wide] + right * data[i + wide + 1])
  );
}

export function quantile(values, share) {
  const sorted = Float64Array.from(values).sort();
  const place = share * (sorted.length - 1);
  const low = Math.floor(place);
  return sorted[low] + (place - low) * (sorted[Math.min(low + 1, sorted.length - 1)] - sorted[low]);
}
