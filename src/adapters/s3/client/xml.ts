/** The text of the first element of this name; undefined if there is none. S3 uses no attributes in what is read. */
export function textOf(xml: string, name: string): string | undefined {
  return elements(xml, name)[0];
}

/** The contents of all elements of this name, in their order: text, or XML if they have children. */
export function elements(xml: string, name: string): string[] {
  const pattern = new RegExp(`<${name}(?:\\s[^>]*)?(?:/>|>([\\s\\S]*?)</${name}>)`, 'g');
  return [...xml.matchAll(pattern)].map((match) => match[1] ?? '');
}

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

/** Replaces the entities in the text of an element. */
export function unescapeXml(text: string): string {
  return text.replaceAll(/&(?:#x([0-9a-fA-F]+)|#(\d+)|(amp|lt|gt|quot|apos));/g, (whole, hex, decimal, name) => {
    if (typeof name === 'string') return entities[name] ?? whole;
    return String.fromCodePoint(typeof hex === 'string' ? Number.parseInt(hex, 16) : Number(decimal));
  });
}

/** Escapes a text for an element. */
export function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
