const LINE_END = 0x0a;

/**
 * The lines of a stream of UTF-8, without their ends. Only a line feed ends one: other characters that some count as line
 * ends may stand inside JSON. An empty last line is none.
 */
export async function* readLines(stream: AsyncIterable<Buffer>): AsyncIterable<string> {
  let parts: Buffer[] = [];
  for await (const chunk of stream) {
    let from = 0;
    for (let end = chunk.indexOf(LINE_END); end >= 0; end = chunk.indexOf(LINE_END, from)) {
      parts.push(chunk.subarray(from, end));
      yield Buffer.concat(parts).toString();
      parts = [];
      from = end + 1;
    }
    if (from < chunk.byteLength) parts.push(chunk.subarray(from));
  }
  if (parts.length > 0) yield Buffer.concat(parts).toString();
}
