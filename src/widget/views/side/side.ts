import { html, type nothing, type TemplateResult } from 'lit';
import type { App } from '../../core/app.ts';
import type { View } from '../../core/view.ts';

type Side = NonNullable<View['side']>;

/** What the panel can show instead of the threads. Each is a file of its own, loaded when it is opened. */
const loaders: Readonly<Record<Side, () => Promise<unknown>>> = {
  inbox: () => import('../inbox/inbox.ts'),
  moderation: () => import('../moderation/queue.ts'),
};

const started = new Set<Side>();
const loaded = new Set<Side>();

/** The view in the place of the panel, with the messages below it, if it is to show them. */
export function sideView(
  app: App,
  side: Side,
  messages: TemplateResult | typeof nothing,
  version: number,
): TemplateResult {
  if (!loaded.has(side)) {
    if (!started.has(side)) void load(app, side);
    return html`<aside
      class="panel"
      role="complementary"
      aria-label=${app.language.text(side === 'inbox' ? 'inbox' : 'queue')}
    >
      <div class="empty"><span class="spinner" aria-hidden="true"></span></div>
    </aside>`;
  }
  if (side === 'moderation')
    return html`<collab-comments-queue .app=${app} .version=${version} .messages=${messages}></collab-comments-queue>`;
  return html`<collab-comments-inbox .app=${app} .version=${version} .messages=${messages}></collab-comments-inbox>`;
}

/** Loads a side; without it the panel closes, and a message says why. */
async function load(app: App, side: Side): Promise<void> {
  started.add(side);
  const part = await app.attempt(loaders[side]);
  if (part === null) started.delete(side);
  else loaded.add(side);
  app.show(part === null ? { panel: false } : {});
}
