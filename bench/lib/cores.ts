/** The core for all processes of the measured server. */
export const serverCore = 0;
/** The core for wrk, the sink and this harness. */
export const loadCore = 1;
