import type { FileWindow } from './file-window.ts';

const CHUNK_HEAD_BYTES = 8;
/** Bytes of a chunk that are read at once. */
const CHUNK_BYTES = 40;
const PCM = 1;
const FLOAT = 3;
const EXTENSIBLE = 0xfffe;
/** The size of a chunk if it is unknown, or in the chunk `ds64`. */
const UNKNOWN_SIZE = 0xffffffff;

/**
 * Returns the duration of a WAV file (RIFF, or RF64 with sizes of 64 bits) in milliseconds, from the number and rate of
 * its samples. Data of unknown size, as written to a pipe, extends to the end of the file. Returns undefined if there
 * is no data.
 *
 * @param mayContinue called for each chunk; false stops the search
 */
export async function wavDuration(file: FileWindow, mayContinue: () => boolean): Promise<number | undefined> {
  const start = await file.at(0, 12);
  if (!/^(?:RIFF|RF64|BW64)$/.test(start.toString('latin1', 0, 4)) || start.toString('latin1', 8, 12) !== 'WAVE')
    return undefined;
  let format = 0;
  let samplesPerSecond = 0;
  let bytesPerSecond = 0;
  let samples = 0;
  let longSize = 0;
  for (let offset = 12; offset < file.size && mayContinue();) {
    const bytes = file.peek(offset, CHUNK_BYTES) ?? (await file.at(offset, CHUNK_BYTES));
    if (bytes.length < CHUNK_HEAD_BYTES) break;
    const type = bytes.toString('latin1', 0, 4);
    const size = bytes.readUInt32LE(4);
    const content = bytes.subarray(CHUNK_HEAD_BYTES);
    if (type === 'ds64' && content.length >= 16)
      longSize = content.readUInt32LE(8) + content.readUInt32LE(12) * 2 ** 32;
    if (type === 'fmt ' && content.length >= 12) {
      format = content.readUInt16LE(0);
      samplesPerSecond = content.readUInt32LE(4);
      // Some writers leave it 0. A block is one sample of each channel.
      bytesPerSecond =
        content.readUInt32LE(8) || (content.length >= 14 ? samplesPerSecond * content.readUInt16LE(12) : 0);
    }
    if (type === 'fact' && content.length >= 4) samples = content.readUInt32LE(0);
    if (type === 'data') {
      const rest = file.size - offset - CHUNK_HEAD_BYTES;
      const declared = size === UNKNOWN_SIZE ? longSize : size;
      const length = declared === 0 ? rest : Math.min(declared, rest);
      const isCompressed = ![PCM, FLOAT, EXTENSIBLE].includes(format);
      return milliseconds(isCompressed && samples > 0 ? samples / samplesPerSecond : length / bytesPerSecond);
    }
    // Chunks begin at even offsets.
    offset += CHUNK_HEAD_BYTES + size + (size % 2);
  }
  return undefined;
}

function milliseconds(seconds: number): number | undefined {
  const ms = Math.round(seconds * 1_000);
  return ms > 0 && Number.isSafeInteger(ms) ? ms : undefined;
}
