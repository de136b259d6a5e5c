export {};
//# sourceMappingURL=block-change.js.map