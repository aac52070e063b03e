import { html, nothing, type TemplateResult } from 'lit';
import { keyed } from 'lit/directives/keyed.js';
import type { App } from '../core/app.ts';
import type { Composer, Written } from './composer.ts';
import { icon } from './icons.ts';
import { listItem } from './panel.ts';
import { newThreadView, threadView } from './thread.ts';

/** Actions of the popover on the page. */
interface Actions {
  /** Creates the thread that was written. */
  create(written: Written): Promise<boolean>;
}

/**
 * The open thread, the field of a new one, or the list of a cluster, beside their pin; a sheet at the bottom of small
 * windows. The messages are in it, where they cover nothing.
 */
export function popoverView(
  app: App,
  version: number,
  actions: Actions,
  messages: TemplateResult,
): TemplateResult | typeof nothing {
  const { open, composing, cluster } = app.view;
  const text = app.language;
  const thread = app.thread(open?.threadId ?? null);
  if (thread !== null) {
    const label = text.text('thread', { name: app.person(thread.userId).name });
    return html`${keyed(thread.id, html`<section class="popover" part="popover" role="dialog" aria-label=${label} tabindex="-1" @animationend=${onAnimationEnd}>${threadView(app, thread, version, messages)}</section>`)}`;
  }
  if (composing !== null && app.mayWrite) {
    return html`<span class="pin draft" part="pin" aria-hidden="true">${icon('comment')}</span>
      <section
        class="popover composing"
        part="popover"
        role="dialog"
        aria-label=${text.text('newThread')}
        tabindex="-1"
        @animationend=${onAnimationEnd}
      >
        ${messages}${newThreadView(app, version, (written) => actions.create(written))}
      </section>`;
  }
  if (cluster === null) return nothing;
  const threads = app.threads.filter(({ id }) => cluster.includes(id));
  return html`<section
    class="popover cluster-list"
    part="popover"
    role="dialog"
    aria-label=${text.text('cluster', { count: threads.length })}
    tabindex="-1"
  >
    <div class="popover-header">
      <h2>${text.text('cluster', { count: threads.length })}</h2>
      <span class="grow"></span>
      <button type="button" class="icon-button" aria-label=${text.text('close')} @click=${() => app.close()}>
        ${icon('close')}
      </button>
    </div>
    <ol class="list">
      ${threads.map((each) => listItem(app, each))}
    </ol>
    ${messages}
  </section>`;
}

/** Repositions the mention list, because the field may have moved since the list opened. */
function onAnimationEnd({ currentTarget }: Event): void {
  (currentTarget as HTMLElement).querySelector<Composer>(':scope > collab-comments-composer')?.requestUpdate();
}
