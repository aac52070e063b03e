import type { FileWindow } from './file-window.ts';

const CHUNK_HEAD_BYTES = 8;
/** Of the chunks that matter, as much as is looked at. */
const LEAST_BYTES = 40;
const PCM = 1;
const FLOAT = 3;
const EXTENSIBLE = 0xfffe;
/** Stands for a size that is not known, or is in the chunk `ds64`. */
const UNKNOWN_SIZE = 0xffffffff;

/**
 * Milliseconds of a WAV file (RIFF, or RF64 with sizes of 64 bits): its samples by their rate. Data whose size is unknown, as
 * in what was written to a pipe, lasts until the end of the file. Undefined when there is none.
 *
 * @param goOn asked at each chunk; false gives up
 */
export async function wavDuration(file: FileWindow, goOn: () => boolean): Promise<number | undefined> {
  const start = await file.at(0, 12);
  if (!/^(?:RIFF|RF64|BW64)$/.test(start.toString('latin1', 0, 4)) || start.toString('latin1', 8, 12) !== 'WAVE') return undefined;
  let format = 0;
  let samplesPerSecond = 0;
  let bytesPerSecond = 0;
  let samples = 0;
  let longSize = 0;
  for (let offset = 12; offset < file.size && goOn(); ) {
    const bytes = file.peek(offset, LEAST_BYTES) ?? (await file.at(offset, LEAST_BYTES));
    if (bytes.length < CHUNK_HEAD_BYTES) break;
    const type = bytes.toString('latin1', 0, 4);
    const size = bytes.readUInt32LE(4);
    const content = bytes.subarray(CHUNK_HEAD_BYTES);
    if (type === 'ds64' && content.length >= 16) longSize = content.readUInt32LE(8) + content.readUInt32LE(12) * 2 ** 32;
    if (type === 'fmt ' && content.length >= 12) {
      format = content.readUInt16LE(0);
      samplesPerSecond = content.readUInt32LE(4);
      bytesPerSecond = content.readUInt32LE(8);
    }
    if (type === 'fact' && content.length >= 4) samples = content.readUInt32LE(0);
    if (type === 'data') {
      const rest = file.size - offset - CHUNK_HEAD_BYTES;
      const told = size === UNKNOWN_SIZE ? longSize : size;
      const length = told === 0 ? rest : Math.min(told, rest);
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
