import { html, nothing, type TemplateResult } from 'lit';
import type { Attachment } from '../../model/attachment.ts';
import type { App } from '../core/app.ts';
import { safeLine } from '../text/safe-text.ts';
import { duration, fileSize } from '../media/format.ts';
import './media.ts';

/** The files of a comment: pictures side by side, then players. */
export function attachmentList(app: App, attachments: readonly Attachment[]): TemplateResult | typeof nothing {
  if (attachments.length === 0) return nothing;
  const images = attachments.filter(({ type }) => type === 'image');
  const players = attachments.filter(({ type }) => type !== 'image');
  return html`<div class="attachments" part="attachments" role="group" aria-label=${app.language.text('attachments')}>
    ${images.length === 0 ? nothing : html`<div class="thumbs">${images.map((image, index) => thumbnail(app, image, images, index))}</div>`}
    ${players.map((file) => player(app, file))}
  </div>`;
}

function thumbnail(app: App, image: Attachment, images: readonly Attachment[], index: number): TemplateResult {
  const name = safeLine(image.filename);
  return html`<button
    type="button"
    class="thumb"
    part="thumbnail"
    aria-label=${app.language.text('openFile', { name })}
    @click=${() => app.show({ viewer: { attachments: images, index } })}
  >
    <collab-comments-media .app=${app} .attachment=${image} .thumb=${true}></collab-comments-media>
  </button>`;
}

function player(app: App, file: Attachment): TemplateResult {
  // Less than a second is still something to hear.
  const length = file.durationMs
    ? duration(Math.max(1_000, file.durationMs))
    : fileSize(file.sizeBytes, app.language.tag);
  return html`<figure class="player ${file.type}" part="player">
    <collab-comments-media .app=${app} .attachment=${file}></collab-comments-media>
    <figcaption><bdi>${safeLine(file.filename, 60)}</bdi><span>${length}</span></figcaption>
  </figure>`;
}
