// The answers to reads are cached as JSON text, since many clients get the same list or thread, and rendering takes most
// of the time of a read. What only some clients get (users, content, held content) is added to a copy: `addToAnswer`
// leaves the text as it is, and what has to look into it parses it here.

/** The value of an answer of this server. */
export function parseAnswer<T>(text: string): T {
  return JSON.parse(text) as T;
}

/** The text of an answer, a JSON object with at least one member, with more members at its end. */
export function addToAnswer(text: string, members: Readonly<Record<string, unknown>>): string {
  return addMembers(text, JSON.stringify(members).slice(1, -1));
}

/** As `addToAnswer`, with members that are rendered already, such as `"comments":[…]`. */
export function addMembers(text: string, members: string): string {
  return `${text.slice(0, -1)},${members}}`;
}
