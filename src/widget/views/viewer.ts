import { html, type PropertyValues, type TemplateResult } from 'lit';
import { keyed } from 'lit/directives/keyed.js';
import { fileSize } from '../media/format.ts';
import { safeLine } from '../text/safe-text.ts';
import { icon } from './icons.ts';
import { definePart, Part } from './part.ts';

/** Shows pictures large, one at a time, over the page. */
class Viewer extends Part {
  override render(): TemplateResult {
    const { app } = this;
    const viewer = app.view.viewer;
    const shown = viewer?.attachments[viewer.index];
    const text = app.language;
    if (viewer === null || shown === undefined) return html``;
    const many = viewer.attachments.length > 1;
    const name = safeLine(shown.filename);
    return html`<dialog
      class="viewer"
      part="viewer"
      aria-label=${text.text('viewer')}
      @close=${this.#close}
      @click=${this.#onClick}
      @keydown=${this.#onKey}
    >
      <div class="viewer-bar">
        <bdi class="grow">${name}</bdi><span class="quiet">${fileSize(shown.sizeBytes, text.tag)}</span>
        <button
          type="button"
          class="icon-button"
          aria-label=${text.text('download', { name })}
          @click=${this.#download}
        >
          ${icon('download')}
        </button>
        <button type="button" class="icon-button" aria-label=${text.text('close')} @click=${this.#close}>
          ${icon('close')}
        </button>
      </div>
      <div class="stage">
        ${keyed(shown.id, html`<collab-comments-media .app=${app} .attachment=${shown}></collab-comments-media>`)}
      </div>
      ${
        many
          ? html`<div class="viewer-bar middle">
              <button
                type="button"
                class="icon-button"
                aria-label=${text.text('previous')}
                @click=${() => this.#move(-1)}
              >
                ${icon('left')}
              </button>
              <span aria-live="polite">${viewer.index + 1} / ${viewer.attachments.length}</span>
              <button type="button" class="icon-button" aria-label=${text.text('next')} @click=${() => this.#move(1)}>
                ${icon('right')}
              </button>
            </div>`
          : ''
      }
    </dialog>`;
  }

  override updated(changed: PropertyValues): void {
    super.updated(changed);
    const dialog = this.querySelector('dialog');
    if (dialog !== null && !dialog.open) dialog.showModal();
  }

  readonly #close = (): void => {
    if (this.app.view.viewer !== null) this.app.show({ viewer: null });
  };

  readonly #onClick = (event: Event): void => {
    const target = event.target as HTMLElement;
    if (target.localName === 'dialog' || target.className === 'stage') this.#close();
  };

  readonly #onKey = (event: KeyboardEvent): void => {
    event.stopPropagation();
    if (event.key === 'ArrowLeft') this.#move(-1);
    if (event.key === 'ArrowRight') this.#move(1);
  };

  #move(step: number): void {
    const { viewer } = this.app.view;
    if (viewer === null) return;
    const { length } = viewer.attachments;
    this.app.show({ viewer: { ...viewer, index: (viewer.index + step + length) % length } });
  }

  readonly #download = async (): Promise<void> => {
    const { viewer } = this.app.view;
    const shown = viewer?.attachments[viewer.index];
    if (shown === undefined) return;
    const url = await this.app.attempt(() => this.app.session.files.url(shown));
    if (url === null) return;
    const link = Object.assign(document.createElement('a'), { href: url, download: shown.filename });
    link.click();
  };
}

definePart('collab-comments-viewer', Viewer);
