package service

// ocids makes OCIDs: ocid1.<type>.<realm>.<region>.<unique>.
type ocids struct{ realm, region string }
