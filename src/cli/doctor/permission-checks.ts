import type { Permissions, Role } from "../../client/admin/permissions.ts";
import { type Check, fail, ok, skip } from "./check.ts";

const ADVICE = "see the users and permissions in docs/operations.md";

/** What each role is for, in the words of the report. */
const PURPOSES: Readonly<Record<Role, string>> = {
  trainer: "act as a trainer",
  observer: "observe, as status and ls do",
  store: "store as a host",
  answers: "listen and answer as a host",
};

/**
 * What the permissions allow. One role is enough: a host may have two users, and an observer need not
 * be a trainer. For a user without any, the report names what a trainer would need.
 */
export function checkPermissions({ roles, refused }: Permissions, trainer: string): Check[] {
  const missing = (role: Role): string => `the broker refuses ${refused[role].join(", ")}`;
  const describe = (name: string, role: Role, as = ""): Check => {
    const what = `${PURPOSES[role]}${as}`;
    return roles.has(role) ? ok(name, `may ${what}`) : skip(name, `this user may not ${what}`);
  };
  const as = ` under the id ${trainer}`;
  const mayNothing = roles.size === 0;
  const isObserver = roles.has("observer") && !roles.has("trainer");
  return [
    mayNothing
      ? fail("trainer permissions", missing("trainer"), ADVICE)
      : describe("trainer permissions", isObserver ? "observer" : "trainer", as),
    describe("host permissions (store)", "store"),
    describe("host permissions (answers)", "answers"),
  ];
}
