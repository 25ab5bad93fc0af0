include "cycle-b.mt"
