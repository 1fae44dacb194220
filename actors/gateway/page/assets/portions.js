// What parts of a node, or of all of them, are taken, and how these stand on each other in a bar or a cell.

export const PARTS = ["used", "releasing", "assumed", "nominated"];

/** `stack` is drawn one on the other and is never more than there is. What is nominated beyond what is free waits for what
 *  is releasing, and is told but not drawn. `rows`: of these nodes together. */
export function portions(board, resource, rows) {
  const found = { all: 0, used: 0, releasing: 0, assumed: 0, nominated: 0, coming: 0 };
  for (const row of rows) {
    const all = board.allocatable[resource][row];
    found.all += all;
    for (const part of PARTS) found[part] += board[part][resource][row];
    found.coming += Math.max(0, Math.min(board.nominated[resource][row], all - board.used[resource][row]));
  }
  const { used, releasing, assumed, nominated, coming } = found;
  return { ...found, promised: assumed + nominated, stack: [["used", used - releasing - assumed], ["promised", assumed + coming], ["releasing", releasing]] };
}
