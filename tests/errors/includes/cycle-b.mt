include "cycle-a.mt"
