data {
  train = tsv("sales.tsv")
  x     : f32
  x1    : f32
  x2    : f32
  x3    : f32
  x4    : f32
  x5    : f32
  x6    : f32
  x7    : f32
  x8    : f32
  x9    : f32
  x10   : f32
  x11   : f32
  x12   : f32
  x13   : f32
  x14   : f32
  x15   : f32
  x16   : f32
  x17   : f32
  x18   : f32
  x19   : f32
  x20   : f32
  x21   : f32
  x22   : f32
  x23   : f32
  x24   : f32
  x25   : f32
  x26   : f32
  x27   : f32
  x28   : f32
  x29   : f32
  x30   : f32
  x31   : f32
  x32   : f32
  x33   : f32
  x34   : f32
  x35   : f32
  x36   : f32
  x37   : f32
  x38   : f32
  x39   : f32
  x40   : f32
  x41   : f32
  x42   : f32
  x43   : f32
  x44   : f32
  x45   : f32
  x46   : f32
  x47   : f32
  x48   : f32
  x49   : f32
  x50   : f32
  x51   : f32
  x52   : f32
  x53   : f32
  x54   : f32
  x55   : f32
  x56   : f32
  x57   : f32
  x58   : f32
  x59   : f32
  x60   : f32
  x61   : f32
  x62   : f32
  x63   : f32
  label : class[3]
}
model {
  y = linear(x, 3)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
