import type { App } from '../core/app.ts';
import type { Composer } from './composer.ts';

const FIELD = 'collab-comments-composer';

/**
 * Takes files that are dropped anywhere on the widget: for the field that they are dropped on, else for that of the
 * open thread or of a new one. Without a field a message says where files can be dropped: the browser would open them
 * in place of the page.
 */
export function acceptDrops(root: DocumentFragment | HTMLElement, app: () => App | null): void {
  const fieldOf = (event: Event): Composer | null =>
    (event.target as Element).closest<Composer>(FIELD) ?? root.querySelector<Composer>(`.popover > ${FIELD}`);
  const end = (): void => {
    for (const each of root.querySelectorAll('.dropping')) each.classList.remove('dropping');
  };
  const on = (kind: 'dragover' | 'drop', act: (field: Composer | null, files: FileList) => void): void =>
    root.addEventListener(kind, (event) => {
      const { dataTransfer } = event as DragEvent;
      if (dataTransfer?.types.includes('Files') !== true) return;
      event.preventDefault();
      act(fieldOf(event), dataTransfer.files);
    });
  root.addEventListener('dragleave', end);
  on('dragover', (field) => field?.querySelector('.composer')?.classList.add('dropping'));
  on('drop', (field, files) => {
    end();
    const shown = app();
    if (field !== null) field.uploads.add(files);
    else shown?.toasts.add({ kind: 'problem', text: shown.language.text('dropHint') });
  });
}
