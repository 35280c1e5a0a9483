// Pixels: colours of the theme, and a frame that is filled by hand: a million small marks are too many for calls of a canvas.

const theme = {};

// Read the colours of the theme that holds now; numbers are pixels (ABGR), texts are for canvas calls.
function readTheme() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["bg", "panel", "hair", "line", "ink", "ink2", "ink3", "work", "sub", "bad", "badtint", "badline", "link", "select"]) {
    const text = style.getPropertyValue("--" + name).trim();
    theme[name] = text;
    theme[name + "Px"] = pixel(rgb(text));
  }
  theme.hue = Array.from({length: 8}, (_, k) => style.getPropertyValue(`--k${k}`).trim());
  theme.kernel = run.kernels.map(({slot}) => {
    const text = style.getPropertyValue(`--k${slot % 8}`).trim(), full = rgb(text), ground = rgb(theme.bg), idle = rgb(theme.hair);
    const share = full.map(value => (value / 255 <= 0.04 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4));
    const isLight = 0.2126 * share[0] + 0.7152 * share[1] + 0.0722 * share[2] > 0.179;       // black reads better on it than white
    return {text, isHatched: slot >= 8, px: pixel(full), stripe: pixel(mixed(full, ground, 0.55)), pale: pixel(mixed(full, idle, 0.78)),
            paleStripe: pixel(mixed(full, idle, 0.88)), ink: isLight ? "#000000" : "#ffffff"};
  });
  theme.tone = {work: theme.workPx, submission: theme.subPx, bad: theme.badPx, rest: theme.linePx};
}

function rgb(text) {
  const hex = text.length === 4 ? [...text.slice(1)].map(c => c + c).join("") : text.slice(1);
  return [0, 2, 4].map(at => parseInt(hex.slice(at, at + 2), 16));
}
const mixed = (a, b, share) => a.map((value, k) => Math.round(value * (1 - share) + b[k] * share));
const pixel = ([r, g, b]) => (255 << 24 | b << 16 | g << 8 | r) >>> 0;

// A frame of pixels; coordinates are device pixels, ends are excluded.
class Pixels {
  constructor(width, height) {
    this.width = width; this.height = height;
    this.image = new ImageData(Math.max(1, width), Math.max(1, height));
    this.data = new Uint32Array(this.image.data.buffer);
  }

  fill(x0, x1, y0, y1, colour) {
    x0 = Math.max(0, x0); x1 = Math.min(this.width, x1);
    if (x1 <= x0) return;
    if (x1 - x0 < 12) {
      for (let y = y0; y < y1; y++) for (let at = y * this.width + x0, end = at + x1 - x0; at < end; at++) this.data[at] = colour;
    } else for (let y = y0; y < y1; y++) this.data.fill(colour, y * this.width + x0, y * this.width + x1);
  }

  hatch(x0, x1, y0, y1, colour, stripe, every = 7, thick = 3) {
    x0 = Math.max(0, x0); x1 = Math.min(this.width, x1);
    for (let y = y0; y < y1; y++) for (let x = x0; x < x1; x++) this.data[y * this.width + x] = (x + y) % every < thick ? stripe : colour;
  }

  mark(x0, x1, y0, y1, kernel, isPale) {
    const c = theme.kernel[kernel];
    if (c.isHatched) this.hatch(x0, x1, y0, y1, isPale ? c.pale : c.px, isPale ? c.paleStripe : c.stripe);
    else this.fill(x0, x1, y0, y1, isPale ? c.pale : c.px);
  }
}
