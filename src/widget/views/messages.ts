import { html, nothing, type TemplateResult } from 'lit';
import type { App } from '../core/app.ts';
import type { Toast } from '../core/toasts.ts';
import type { Language } from '../strings/language.ts';
import { icon } from './icons.ts';

/**
 * The problem of the connection or the room, unless it was dismissed or the panel says it, and short messages, the
 * newest first.
 */
export function toastsView(app: App): TemplateResult {
  const { problem, language } = app;
  const { status } = app.state;
  const lost = status !== 'live' && status !== 'closed';
  const action = lost ? undefined : { label: language.text('retry') };
  return html`<div class="toasts" part="toasts">
    ${
      problem === null || app.view.dismissed || (app.unloaded && app.view.panel)
        ? nothing
        : toastView(
            language,
            { kind: lost ? 'notice' : 'problem', text: problem, action },
            () => app.show({ dismissed: true }),
            () => app.retry(),
          )
    }
    ${[...app.toasts.shown].reverse().map((toast) =>
      toastView(
        language,
        toast,
        () => app.toasts.dismiss(toast),
        () => app.toasts.act(toast),
      ),
    )}
  </div>`;
}

/** The content of a message; a `notice` is of something that goes on. */
interface Message {
  readonly kind: Toast['kind'] | 'notice';
  readonly text: string;
  readonly action?: { readonly label: string } | undefined;
}

/** A message. Without `dismiss` it has no button to close it. `act` is what its action does. */
export function toastView(
  language: Language,
  { kind, text, action }: Message,
  dismiss?: () => void,
  act?: () => void,
): TemplateResult {
  return html`<div class="toast ${kind}" part="toast" role=${kind === 'info' ? 'status' : 'alert'}>
    ${kind === 'notice' ? html`<span class="spinner" aria-hidden="true"></span>` : kind === 'problem' ? icon('warn') : nothing}
    <p>${text}</p>
    ${action === undefined ? nothing : html`<button type="button" class="button" @click=${act}>${action.label}</button>`}
    ${dismiss === undefined ? nothing : html`<button type="button" class="icon-button" aria-label=${language.text('dismiss')} @click=${(event: MouseEvent) => onDismiss(event, dismiss)}>${icon('close')}</button>`}
  </div>`;
}

/** Dismisses a message; the focus of the keyboard goes on to the field or button of what the message was in. */
function onDismiss({ currentTarget, detail }: MouseEvent, dismiss: () => void): void {
  const place = (currentTarget as Element).closest('.popover, .panel, .root');
  dismiss();
  if (detail === 0) place?.querySelector<HTMLElement>('textarea, input, [part=add], [part=toggle]')?.focus();
}
