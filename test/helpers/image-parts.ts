/**
 * Splits an encoded image into the parts of its format: segments of JPEG, chunks of PNG and WebP; any other into six
 * equal parts.
 */
export function imageParts(image: Buffer): Buffer[] {
  if (image[0] === 0xff) return cut(image, 2, jpegSegmentSize);
  if (image[0] === 0x89) return cut(image, 8, (at) => 12 + image.readUInt32BE(at));
  if (image.toString('latin1', 0, 4) === 'RIFF')
    return cut(image, 12, (at) => 8 + evenSize(image.readUInt32LE(at + 4)));
  return cut(image, 0, () => Math.ceil(image.length / 6));
}

function cut(image: Buffer, head: number, sizeAt: (at: number, image: Buffer) => number): Buffer[] {
  const parts = head === 0 ? [] : [image.subarray(0, head)];
  for (let at = head; at < image.length;) {
    const end = at + sizeAt(at, image);
    parts.push(image.subarray(at, end));
    at = end;
  }
  return parts;
}

const evenSize = (size: number): number => size + (size % 2);

/** The size of a segment; that of a scan with its data. */
function jpegSegmentSize(at: number, image: Buffer): number {
  if (image[at + 1] === 0xd9) return 2;
  const size = 2 + image.readUInt16BE(at + 2);
  if (image[at + 1] !== 0xda) return size;
  let end = at + size;
  while (image[end] !== 0xff || isInScan(image[end + 1] ?? 0)) end += 1;
  return end - at;
}

/** Whether a marker is part of the data of a scan: a stuffed zero, or RST0 to RST7. */
const isInScan = (marker: number): boolean => marker === 0 || (marker >= 0xd0 && marker <= 0xd7);
