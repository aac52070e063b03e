/** The response of `/demo/session`: the credentials of one demo user. */
interface Session {
  readonly publishableKey: string;
  readonly token: string;
  readonly roomId: string;
}

/** The part of `<collab-comments>` that this page uses. */
type Comments = HTMLElement & { tokenProvider: () => Promise<string> };

const userId = new URLSearchParams(location.search).get('user') ?? 'ann';

async function openSession(): Promise<Session> {
  const response = await fetch(`/demo/session?user=${encodeURIComponent(userId)}`);
  const session = (await response.json()) as Session & { error?: string };
  if (!response.ok) throw new Error(session.error ?? `/demo/session answered ${response.status}`);
  return session;
}

async function start(): Promise<void> {
  const comments = document.createElement('collab-comments') as Comments;
  const { publishableKey, roomId } = await openSession();
  comments.setAttribute('publishable-key', publishableKey);
  comments.setAttribute('room', roomId);
  comments.setAttribute('cursors', '');
  comments.tokenProvider = async () => (await openSession()).token;
  document.body.append(comments);
}

start().catch((error: unknown) => {
  const notice = document.createElement('p');
  notice.setAttribute('role', 'alert');
  notice.textContent = `The comments cannot start: ${error instanceof Error ? error.message : String(error)}. Is the server running?`;
  document.body.prepend(notice);
});
