export const cookie = { name: "session", path: "/" };
