/** The core that holds every process of the server that is measured. */
export const serverCore = 0;
/** The core that holds wrk, the sink and this harness. */
export const loadCore = 1;
