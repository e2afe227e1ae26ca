// Letters that nobody sees: they take no room, turn the order of what is read, or steer a terminal. Whoever approves a command must
// see all of it, so a mark with their numbers stands in their place.

/** What a script or an emoji needs to be written rightly is left as it is, and so are line ends. */
const NEEDED = String.raw`\r(?=\n)|\p{ExtPict}[\p{EMod}\ufe0e\ufe0f]?(?:\u200d\p{ExtPict}[\p{EMod}\ufe0e\ufe0f]?)*|[0-9#*]\ufe0f\u20e3`
  + String.raw`|(?<=[\p{sc=Arab}\p{sc=Syrc}\p{sc=Deva}\p{sc=Beng}\p{sc=Guru}\p{sc=Gujr}\p{sc=Orya}\p{sc=Taml}\p{sc=Telu}\p{sc=Knda}\p{sc=Mlym}\p{sc=Sinh}])[\u200c\u200d]`;
const HIDDEN = String.raw`[\0-\x08\x0b-\x1f\x7f-\x9f\p{DI}\u2028\u2029\u2800\ufff9-\ufffb]`;
const ANY = new RegExp(HIDDEN, 'u');
const EACH = new RegExp(`${NEEDED}|(${HIDDEN}+)`, 'gu');

/** The text in pieces: `[words]`, or `[words, letters]` where the words name letters that cannot be seen. */
export function* pieces(text) {
  if (!ANY.test(text)) return yield [text];
  let plain = 0;
  for (const match of text.matchAll(EACH)) {
    if (!match[1]) continue;
    if (match.index > plain) yield [text.slice(plain, match.index)];
    yield [named(match[1]), match[1]];
    plain = match.index + match[1].length;
  }
  if (plain < text.length) yield [text.slice(plain)];
}

/** The same as one text, for what is no element: titles and labels. */
export const spelled = (text) => (ANY.test(text) ? Array.from(pieces(text), ([words, letters]) => (letters ? `[${words}]` : words)).join('') : text);

/** `U+200B`, and how many of them follow each other. */
function named(letters) {
  const runs = [];
  for (const letter of letters) {
    const last = runs.at(-1);
    if (last?.letter === letter) last.count += 1;
    else runs.push({ letter, count: 1 });
  }
  return runs.map(({ letter, count }) => `U+${letter.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}${count > 1 ? `×${count}` : ''}`).join(' ');
}
