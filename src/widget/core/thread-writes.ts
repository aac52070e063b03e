import type { Position } from '../../model/thread.ts';
import type { App } from './app.ts';

/** Resolves a thread and then closes it, or reopens it. It stays open if the server refuses. */
export async function setResolved(app: App, threadId: string, resolved: boolean): Promise<void> {
  const done = await app.attempt(async () => {
    await app.room.setResolved(threadId, resolved);
    return true;
  });
  if (done === null || !resolved) return;
  if (app.view.open?.threadId === threadId) app.close();
  const reopen = (): void => {
    void setResolved(app, threadId, false);
    app.openThread(threadId);
  };
  app.toasts.add({
    kind: 'info',
    text: app.language.text('threadResolved'),
    action: { label: app.language.text('undo'), run: reopen },
  });
}

/** Pins a thread to another place, which can be undone. Resolves with whether the server accepted it. */
export async function moveThread(app: App, threadId: string, position: Position): Promise<boolean> {
  const before = app.thread(threadId)?.position ?? null;
  const moved = await app.attempt(async () => {
    await app.room.moveThread(threadId, position);
    return true;
  });
  if (moved === null) return false;
  const action =
    before === null
      ? undefined
      : { label: app.language.text('undo'), run: () => void moveThread(app, threadId, before) };
  app.toasts.add({ kind: 'info', text: app.language.text('placed'), action });
  return true;
}
