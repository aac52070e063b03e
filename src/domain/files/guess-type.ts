import { contradicts } from '../../model/attachment.ts';

/** The types of files by extension. */
const byExtension: Readonly<Record<string, string>> = {
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  png: 'image/png',
  gif: 'image/gif',
  webp: 'image/webp',
  weba: 'audio/webm',
  ogg: 'audio/ogg',
  oga: 'audio/ogg',
  opus: 'audio/ogg',
  m4a: 'audio/mp4',
  mp3: 'audio/mpeg',
  wav: 'audio/wav',
  webm: 'video/webm',
  mp4: 'video/mp4',
  m4v: 'video/mp4',
};

/** The type that the extension of a file name stands for; undefined if it stands for none that is accepted. */
function typeOfName(filename: string): string | undefined {
  const extension = /\.([A-Za-z0-9]{1,5})$/.exec(filename)?.[1]?.toLowerCase() ?? '';
  return Object.hasOwn(byExtension, extension) ? byExtension[extension] : undefined;
}

/** How many bytes of a file `guessedType` needs. */
export const SIGNATURE_BYTES = 12;

/** The first bytes of each type as Latin-1 (the signatures of the WHATWG MIME Sniffing Standard); `?` is any byte. */
const signatures: readonly (readonly [signature: string, type: string])[] = [
  ['\xff\xd8\xff', 'image/jpeg'],
  ['\x89PNG\r\n\x1a\n', 'image/png'],
  ['GIF8', 'image/gif'],
  ['RIFF????WEBP', 'image/webp'],
  ['RIFF????WAVE', 'audio/wav'],
  ['OggS', 'audio/ogg'],
  ['ID3', 'audio/mpeg'],
  ...['\xe2', '\xe3', '\xf2', '\xf3', '\xfa', '\xfb'].map((layer3): [string, string] => [
    `\xff${layer3}`,
    'audio/mpeg',
  ]),
  ['????ftypM4A', 'audio/mp4'],
  ['????ftypM4B', 'audio/mp4'],
  ['????ftyp', 'video/mp4'],
  ['\x1a\x45\xdf\xa3', 'video/webm'],
];

/** The type that the first bytes of a file stand for; undefined if they stand for none that is accepted. */
function typeOfContent(head: Buffer): string | undefined {
  const text = head.subarray(0, SIGNATURE_BYTES).toString('latin1');
  return signatures.find(([signature]) => startsWith(text, signature))?.[1];
}

/**
 * The MIME type of a file whose client declares none: the type that the extension of the name stands for, unless the
 * first bytes contradict it; then the type that these stand for. So the name tells audio from video in the same
 * container. Undefined if neither stands for an accepted type.
 *
 * @param head the first `SIGNATURE_BYTES` of the file, or all of it if it is shorter
 */
export function guessedType(filename: string, head: Buffer): string | undefined {
  const seen = typeOfContent(head);
  const named = typeOfName(filename);
  return seen === undefined || (named !== undefined && !contradicts(seen, named)) ? named : seen;
}

function startsWith(text: string, signature: string): boolean {
  if (text.length < signature.length) return false;
  for (let index = 0; index < signature.length; index++)
    if (signature[index] !== '?' && signature[index] !== text[index]) return false;
  return true;
}
