// What the browser keeps: the theme, the last filter, the token. Where storage is forbidden or full, it is kept as long as the page is open.

const kept = new Map();

/** `area` is `localStorage` or `sessionStorage`; where it is forbidden, already its name throws. */
export function readStored(area, key) {
  if (kept.has(key)) return kept.get(key);
  try {
    return window[area].getItem(key);
  } catch {
    return null;
  }
}

/** `null` removes it. */
export function store(area, key, value) {
  try {
    if (value === null) window[area].removeItem(key);
    else window[area].setItem(key, value);
    kept.delete(key);
  } catch {
    kept.set(key, value);
  }
}
