/** The environment variable with the role of a worker process, which only workers and what they start have. */
export const ROLE_VARIABLE = 'COLLAB_ROLE';
