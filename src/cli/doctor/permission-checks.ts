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
  return [
    mayNothing
      ? fail("trainer permissions", missing("trainer"), ADVICE)
      : describe("trainer permissions", roles.has("trainer") ? "trainer" : ownRole(roles), as),
    describe("host permissions (store)", "store"),
    describe("host permissions (answers)", "answers"),
  ];
}

/** The role to report about: an observer's own, else that of a trainer. */
function ownRole(roles: ReadonlySet<Role>): Role {
  return roles.has("observer") ? "observer" : "trainer";
}
