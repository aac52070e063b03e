import { html, nothing, type TemplateResult } from 'lit';
import type { App } from '../core/app.ts';
import type { Toast } from '../core/toasts.ts';
import { icon } from './icons.ts';

/** What went wrong with the connection or the room, and short messages. */
export function toastsView(app: App, problem: string | null): TemplateResult {
  return html`<div class="toasts" part="toasts">
    ${problem === null ? nothing : bannerView(problem, app)}
    ${app.toasts.shown.map((toast) => toastView(app, toast))}
  </div>`;
}

/** A message that stays while its cause lasts. */
export function bannerView(problem: string, app: App | null): TemplateResult {
  const lost = app !== null && (app.state.status === 'reconnecting' || app.state.status === 'offline');
  return html`<div class="toast ${lost ? 'notice' : 'problem'}" part="toast" role="alert">${lost ? html`<span class="spinner" aria-hidden="true"></span>` : icon('warn')}<p>${problem}</p>
    ${app === null || lost ? nothing : html`<button type="button" class="button" @click=${() => app.retry()}>${app.language.text('retry')}</button>`}</div>`;
}

function toastView(app: App, toast: Toast): TemplateResult {
  const { action } = toast;
  return html`<div class="toast ${toast.kind}" part="toast" role=${toast.kind === 'problem' ? 'alert' : 'status'}>
    ${toast.kind === 'problem' ? icon('warn') : nothing}<p>${toast.text}</p>
    ${action === undefined ? nothing : html`<button type="button" class="button" @click=${() => app.toasts.act(toast)}>${action.label}</button>`}
    <button type="button" class="icon-button" aria-label=${app.language.text('dismiss')} @click=${() => app.toasts.dismiss(toast)}>${icon('close')}</button>
  </div>`;
}
