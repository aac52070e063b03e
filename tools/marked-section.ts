/**
 * Replaces the section called `name` of a Markdown page by `content`. The section is between the comments
 * `<!-- name … -->` and `<!-- /name -->`, each on its own line; the rest of the page is unchanged.
 *
 * @throws {Error} if the page has no such section
 */
export function withSection(page: string, name: string, content: string): string {
  const begin = new RegExp(`^<!-- ${name}\\b.*-->$`, 'm').exec(page);
  const end = page.indexOf(`<!-- /${name} -->`);
  if (begin === null || end < begin.index)
    throw new Error(`the page has no section between <!-- ${name} --> and <!-- /${name} -->`);
  const head = page.slice(0, begin.index + begin[0].length);
  return `${head}\n\n${content.trim()}\n\n${page.slice(end)}`;
}
