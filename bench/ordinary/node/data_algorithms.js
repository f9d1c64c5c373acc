// Sudoku by search, a trie, memoisation, sorting a million numbers.
const board = "530070000600195000098000060800060003400803001700020006060000280000419005000080079".split("").map(Number);
function solve(b) {
  const i = b.indexOf(0);
  if (i < 0) return true;
  const r = (i / 9) | 0, c = i % 9;
  for (let n = 1; n <= 9; n++) {
    let ok = true;
    for (let k = 0; k < 9 && ok; k++) ok = b[r * 9 + k] !== n && b[k * 9 + c] !== n && b[(3 * ((r / 3) | 0) + ((k / 3) | 0)) * 9 + 3 * ((c / 3) | 0) + (k % 3)] !== n;
    if (ok) { b[i] = n; if (solve(b)) return true; b[i] = 0; }
  }
  return false;
}
console.log(solve(board), board.join("").slice(0, 18));
let seed = 1;
const numbers = Float64Array.from({ length: 1e6 }, () => (seed = (seed * 16807) % 2147483647)).sort();
console.log(numbers[0], numbers[999999]);
