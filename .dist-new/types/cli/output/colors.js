import { styleText } from "node:util";
const FORMATS = {
    ok: "green",
    warn: "yellow",
    fail: "red",
    strong: "bold",
    faint: "gray",
};
/** Makes a {@link Paint} that uses colours or not. */
export function makePaint(colored) {
    // Node's own check would look at process.stdout instead of the stream that is written to.
    return (style, text) => colored ? styleText(FORMATS[style], text, { validateStream: false }) : text;
}
/** Colours that distinguish trainers, in turn. */
const RANK_COLORS = ["cyan", "magenta", "blue", "green", "yellow", "gray"];
/** Makes a {@link PaintRank} that uses colours or not. */
export function makePaintRank(colored) {
    return (rank, text) => {
        const color = RANK_COLORS[rank % RANK_COLORS.length] ?? "gray";
        return colored ? styleText(color, text, { validateStream: false }) : text;
    };
}
/** Whether text for a stream may be coloured; `isTTY` is that stream's. */
export function wantsColor(isTTY, environment, noColorFlag) {
    return isTTY && !noColorFlag && !environment["NO_COLOR"] && environment["TERM"] !== "dumb";
}
/** Whether a stream may show a line that is overwritten. */
export function wantsAnimation(isTTY, environment) {
    return isTTY && environment["TERM"] !== "dumb" && !environment["CI"];
}
//# sourceMappingURL=colors.js.map