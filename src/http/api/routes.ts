import type { Route } from './route.ts';
import { adminAuditRoutes } from './routes/admin-audit.ts';
import { adminAuthRoutes } from './routes/admin-auth.ts';
import { adminEnvironmentRoutes } from './routes/admin-environments.ts';
import { adminKeyRoutes } from './routes/admin-keys.ts';
import { commentRoutes } from './routes/comments.ts';
import { eventRoutes } from './routes/events.ts';
import { moderationRoutes } from './routes/moderation.ts';
import { notificationRoutes } from './routes/notifications.ts';
import { asyncapiRoute, openapiRoute } from './routes/openapi.ts';
import { sharedStateRoutes } from './routes/shared-state.ts';
import { reactionRoutes } from './routes/reactions.ts';
import { roomRoutes } from './routes/rooms.ts';
import { threadRoutes } from './routes/threads.ts';
import { turnRoutes } from './routes/turn.ts';
import { uploadRoutes } from './routes/upload.ts';
import { userRoutes } from './routes/users.ts';

/** Every route of the API, in the order in which the OpenAPI document shows them. */
export const apiRoutes: readonly Route[] = [
  ...threadRoutes,
  ...commentRoutes,
  ...reactionRoutes,
  ...roomRoutes,
  ...uploadRoutes,
  ...userRoutes,
  ...moderationRoutes,
  ...notificationRoutes,
  ...sharedStateRoutes,
  ...turnRoutes,
  ...eventRoutes,
  ...adminAuthRoutes,
  ...adminEnvironmentRoutes,
  ...adminKeyRoutes,
  ...adminAuditRoutes,
  openapiRoute(() => apiRoutes),
  asyncapiRoute,
];
