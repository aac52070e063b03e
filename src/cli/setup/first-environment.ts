/** The slug of the environment that every new data folder has. Apart, so that a start need not load what creates it. */
export const FIRST_ENVIRONMENT = 'default';
