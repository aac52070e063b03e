import { get } from 'node:http';

/** Milliseconds between two looks. */
const look = 5;

/** Resolves when the condition holds; throws, naming what was awaited, when it doesn't within the limit. */
export async function until(what: string, limitMs: number, condition: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + limitMs;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`${what}: not within ${limitMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, look));
  }
}

/** Whether a GET of the address is answered by 200 just now. */
export function answers(url: string): Promise<boolean> {
  return new Promise((resolve) => {
    const request = get(url, { agent: false, timeout: 1000 }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    request.on('timeout', () => request.destroy());
    request.on('error', () => resolve(false));
  });
}
