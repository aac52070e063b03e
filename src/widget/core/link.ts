/** A thread, and perhaps a comment in it, that an address leads to. */
export interface Target {
  readonly threadId: string;
  readonly commentId: string | null;
}

const FRAGMENT = /^#collab=([\w-]{1,128})(?:\/([\w-]{1,128}))?$/;

/** The target of the fragment of an address (`#collab=<thread id>/<comment id>`); null if it is none of ours. */
export function readLink(fragment: string): Target | null {
  const found = FRAGMENT.exec(fragment);
  return found?.[1] === undefined ? null : { threadId: found[1], commentId: found[2] ?? null };
}

/** The address of a thread or comment on a page. */
export function linkTo(page: string, { threadId, commentId }: Target): string {
  const address = new URL(page);
  address.hash = `collab=${threadId}${commentId === null ? '' : `/${commentId}`}`;
  return address.href;
}
