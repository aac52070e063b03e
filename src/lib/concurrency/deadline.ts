/**
 * Resolves or rejects as `work`. If that takes longer than `ms` milliseconds, it returns what `late` returns, or rejects with
 * what `late` throws; `work` continues then, and its outcome is dropped.
 */
export async function within<T, L>(ms: number, work: Promise<T>, late: () => L): Promise<T | L> {
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
