/** Undoes a zoom of the page, so that the pixels of the widget are those of the window, in which pins are measured. */
export function unzoom(host: HTMLElement, renderRoot: DocumentFragment | HTMLElement): void {
  const zoom = 'currentCSSZoom' in host ? Number(host.currentCSSZoom) : 1;
  const root = renderRoot.querySelector<HTMLElement>('.root');
  if (root !== null && root.style.getPropertyValue('--unzoom') !== String(1 / zoom))
    root.style.setProperty('--unzoom', String(1 / zoom));
}
