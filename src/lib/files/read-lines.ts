const LINE_END = 0x0a;

/**
 * Yields the lines of a UTF-8 stream, without their line feeds. Only a line feed ends a line, because other line
 * separators may occur within JSON. An empty last line is not yielded.
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
