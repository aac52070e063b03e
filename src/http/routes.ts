import type { Route } from './route.ts';
import { commentRoutes } from './routes/comments.ts';
import { eventRoutes } from './routes/events.ts';
import { openapiRoute } from './routes/openapi.ts';
import { roomRoutes } from './routes/rooms.ts';
import { threadRoutes } from './routes/threads.ts';
import { userRoutes } from './routes/users.ts';

/** Every route of the API, in the order in which the OpenAPI document shows them. */
export const apiRoutes: readonly Route[] = [
  ...threadRoutes,
  ...commentRoutes,
  ...roomRoutes,
  ...userRoutes,
  ...eventRoutes,
  openapiRoute(() => apiRoutes),
];
