/**
 * Settles as `work` does or, after `ms` milliseconds, as `late` does. `work` then continues, and its outcome is
 * ignored.
 */
export async function withTimeout<T, L>(ms: number, work: Promise<T>, late: () => L): Promise<T | L> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  }).then(late);
  try {
    return await Promise.race([work, deadline]);
  } finally {
    clearTimeout(timer);
  }
}
