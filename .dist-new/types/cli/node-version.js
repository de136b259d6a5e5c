// Imports nothing and uses no newer syntax, so that an old Node.js gets as far as the message.
/** The oldest Node.js that runs the package, as in package.json. */
const OLDEST = [20, 19];
/** Ends the process with one line if this Node.js is too old for what the program imports next. */
export function checkNodeVersion(program) {
    const [major = 0, minor = 0] = process.version.slice(1).split(".").map(Number);
    if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1]))
        return;
    const needed = `Node.js ${OLDEST.join(".")} or newer`;
    process.stderr.write(`${program}: expected ${needed}; received ${process.version}\n`);
    process.exit(1);
}
//# sourceMappingURL=node-version.js.map